// Package takeover holds the releases that nap enable makes against Helm's own code: its
// list, upgrade, rollback and uninstall. It has a module of its own, because Helm's package
// for these brings hundreds of packages along that nothing else of nap needs.
package takeover
