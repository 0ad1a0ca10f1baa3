// Package cloudinit does with a machine's custom data what cloud-init does at the first
// boot of an AKS image: it unpacks the MIME parts and runs the boothook.
//
// Nothing is executed on the computer that the simulation runs on. The boothook is
// interpreted by a small shell ([Boot]) with the few programs that the images use at that
// moment, on a disk in memory. What a real machine would run and this shell does not know
// ends as on the machine, with exit code 127.
package cloudinit
