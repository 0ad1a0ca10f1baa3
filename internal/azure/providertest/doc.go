// Package providertest holds the tests of the whole Azure provider against the
// simulated Azure. It has no code of its own: each test starts a provider in a
// synctest bubble, with the clock and the network simulated, and asks it to buy,
// list, update and delete machines as the controller does. harness_test.go has the simulated
// Azure with its provider, orders_test.go what is asked for, requests_test.go the
// requests and transports of other parties. Tests of one room are in that room.
package providertest
