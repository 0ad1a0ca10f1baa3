// Package providertest holds the tests of the whole Azure provider against the
// simulated Azure. It has no code of its own: each test starts a provider in a
// synctest bubble, with the clock and the network simulated, and asks it to buy,
// list, update and delete machines as the controller does. harness_test.go is what
// the tests share. Tests of one room of the provider are in that room.
package providertest
