package command

import (
	"fmt"
	"regexp"
)

var subscriptionPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// CheckSubscription refuses a --subscription that is none, such as the name of one, before Azure is
// asked for it.
func CheckSubscription(id string) error {
	if subscriptionPattern.MatchString(id) {
		return nil
	}
	return fmt.Errorf("--subscription: got %q, must be a UUID such as 00000000-0000-0000-0000-000000000001; "+
		"az account list -o table shows yours", id)
}
