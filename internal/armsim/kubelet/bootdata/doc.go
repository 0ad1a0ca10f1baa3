// Package bootdata reads and writes what a simulated machine boots from: the
// variables of a boot script (shell.go reads the shell's quoting) and the flags of
// the kubelet in them. [Parse] reports every fault of a script at once, each with
// the variable it is in; [Data.Script] writes a script that Parse reads.
package bootdata
