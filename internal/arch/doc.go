// Package arch holds no code, only tests that keep the house in order: what may
// import what and why, a doc comment in every package, every user-visible
// reason registered in one place. A failing test tells a newcomer what to do
// instead.
package arch
