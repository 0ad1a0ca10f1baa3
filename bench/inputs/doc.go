// Package inputs measures what short files of many things cost `nap plan -f`: time, processor
// time and memory of the program, from its start to its end. Each kind is repeated until the file
// has as many bytes as an object of the API server may have.
package inputs
