// Package identity is the simulated Microsoft Entra ID: the tenant's principals, the
// token endpoint and its discovery, and the checks of bearer tokens and permissions.
//
// A federated token is taken for what it says; its signature is not checked, because
// the simulated cluster has no public issuer.
package identity
