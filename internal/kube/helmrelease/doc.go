// Package helmrelease installs nap's charts as Helm does: the objects are applied as
// Helm's, and the release is written down in the Secrets in which Helm keeps releases. From
// then on helm list, upgrade, rollback and uninstall see a release like any other.
//
// Helm's renderer and its types are Helm's own library; what applies and stores releases
// there brings three hundred packages along that nap does not need, and is written again
// here, in the form of Helm's storage driver for Secrets.
//
// An installation that was stopped leaves a pending revision, which the next one finishes.
package helmrelease
