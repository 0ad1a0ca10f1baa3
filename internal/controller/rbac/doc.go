// Package rbac holds the permissions of the controller, once: the manifest that
// users and the lab apply is the same text from which the controller learns, at
// its start, what to ask the API server for.
//
// Start with [Manifests], which binds the roles to an account, and [Required], which
// lists every single permission.
package rbac
