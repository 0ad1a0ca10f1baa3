// Package nodeconfig reads AKSNodeConfig, the configuration that AKS's node images boot
// from, as the program on these images reads it.
//
// contract.txt has the messages of the contract with their source. [Parse] decodes JSON
// with the very library that the node's program uses, in its mode: fields that the contract
// does not have are passed over, so that newer configurations boot older images. What it
// then demands is [Configuration.Validate].
package nodeconfig
