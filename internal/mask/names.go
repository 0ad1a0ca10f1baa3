package mask

import (
	"strings"
	"unicode"
)

// kind is what the value is that a name has.
type kind int

const (
	plain kind = iota
	// secret is a password or the like, of any characters.
	secret
	// setting is a key or signature that stands among others, with ; & or , between them.
	setting
	// header is a whole line of HTTP, or several settings of which one is a secret.
	header
	// address is the address of a proxy.
	address
)

// kindOf is what the value of a name is. clientSecret, client-secret and CLIENT_SECRET are
// one name, and so are password and password2.
func kindOf(name string) kind {
	if isWayToSignIn(name) {
		return plain
	}
	joined := strings.TrimRight(strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-.", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name), "0123456789")
	if k := kindOfEnd(joined); k != plain {
		return k
	}
	switch lastWord(name) {
	case "pass", "pwd", "psk", "bearer":
		return secret
	case "sig", "sas":
		return setting
	}
	for _, form := range []string{"data", "base64", "b64", "pem", "value", "text", "string", "hash"} {
		if of, ok := strings.CutSuffix(joined, form); ok {
			return kindOfEnd(of)
		}
	}
	return plain
}

// isWayToSignIn reports whether a name is one of those by which Azure's identity library calls
// its ways to sign in. Its errors begin so, and say why each way does not work.
func isWayToSignIn(name string) bool {
	switch name {
	case "DefaultAzureCredential", "ChainedTokenCredential", "EnvironmentCredential", "WorkloadIdentityCredential",
		"ManagedIdentityCredential", "AzureCLICredential", "AzureDeveloperCLICredential", "AzurePowerShellCredential", "AzurePipelinesCredential",
		"ClientSecretCredential", "ClientCertificateCredential", "ClientAssertionCredential":
		return true
	}
	return false
}

// kindOfEnd is the kind of a name in lower case without separators, which its end tells.
func kindOfEnd(joined string) kind {
	switch {
	case endsIn(joined, "authorization", "cookie", "connectionstring", "sharedaccesssignature"):
		return header
	case endsIn(joined, "accountkey", "accesskey", "sharedkey", "signature"):
		return setting
	case endsIn(joined, "password", "passwords", "passwd", "passphrase", "secret", "secrets", "token", "tokens",
		"credential", "credentials", "jwt"),
		endsIn(joined, "apikey", "privatekey", "secretkey", "clientkey", "primarykey", "secondarykey", "storagekey",
			"signingkey", "encryptionkey", "masterkey", "subscriptionkey", "tlskey"),
		endsIn(joined, "customdata", "userdata", "clientcertificate", "certificateauthority", "cabundle", "trustedca"):
		return secret
	case endsIn(joined, "proxy", "proxyurl", "proxyaddress"):
		return address
	}
	return plain
}

func endsIn(name string, ends ...string) bool {
	for _, end := range ends {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// lastWord is the last word of a name of whatever style, in lower case.
func lastWord(name string) string {
	name = strings.TrimRight(name, "_-.0123456789")
	at := strings.LastIndexAny(name, "_-.") + 1
	for i := len(name) - 1; i > at; i-- {
		if unicode.IsUpper(rune(name[i])) && unicode.IsLower(rune(name[i-1])) {
			at = i
			break
		}
	}
	return strings.ToLower(name[at:])
}

// kindInQuery is the kind of a name in the query of an address.
func kindInQuery(name string) kind {
	switch strings.ToLower(name) {
	case "code", "key":
		return setting
	}
	return kindOf(name)
}

// isPlural reports whether a name of a secret is a plural, by which prose means objects.
func isPlural(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "pass")
}

// noSecret reports whether a value says that there is none, or is no text.
func noSecret(value string) bool {
	switch strings.ToLower(value) {
	case "", "true", "false", "null", "nil", "<nil>", "<none>", "none", "~", "[]", "{}", "map[]":
		return true
	}
	return false
}
