// Command charts is as much of Helm as nap's charts need before they are installed:
// Helm's own library lints, renders and packages them. It does not speak to clusters.
//
//	charts lint CHART
//	charts template RELEASE CHART [--namespace NAME] [--values FILE]... [--set KEY=VALUE]... [--api-versions GROUP/VERSION]... [--notes]
//	charts package CHART [--version VERSION] [--destination DIR]
//
// Helm's program itself takes about four minutes to build on two cores, this one a
// fraction of that.
package main

import (
	"fmt"
	"os"

	"github.com/nodeautoprovision/nap/charts"
)

func main() {
	if err := charts.Run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
}
