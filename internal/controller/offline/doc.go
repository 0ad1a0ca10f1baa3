// Package offline lays out what can be bought without asking Azure: the sizes and list
// prices that nap is built with, those of a user's file over them, or a catalogue of a file.
// The command line plans with it, and so does the shadow, which needs no right in Azure.
//
// Start with [Open], whose [Source] is the catalogue of every NodePool.
package offline
