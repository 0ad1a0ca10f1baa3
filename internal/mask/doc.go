// Package mask puts *** in the place of secrets in what nap prints, logs, tells and packs
// for support: passwords, tokens, keys, signatures, certificates, and the user and password
// in addresses of proxies.
//
// [Text] is for a text of any form: a line of a log, JSON, JSON that is quoted in JSON,
// YAML, an address, an error. [Address] is for what is known to be an address or a list of
// them, and [Value] for an object before it is written as YAML, whose lines are folded.
//
// A text is read in two steps. Escapes are undone first, however often they are escaped
// themselves, so that each rule is stated once ([decode]). Then the rules look for secrets by
// their own form (forms.go), by the name before them (fields.go), and in addresses
// (addresses.go). What is in doubt is masked: a word that is lost in a log costs less than a
// password that is told.
//
// Each function gives a text that it leaves as it is. Standard library only.
package mask
