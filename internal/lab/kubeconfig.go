package lab

import (
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// contextName is the name of the only cluster, user and context in a lab's
// kubeconfigs.
const contextName = "nap-lab"

// kubeconfigs writes one kubeconfig per identity, each with a fresh certificate.
func kubeconfigs(l layout, ca *authority, server string, now time.Time) error {
	for _, id := range identities() {
		cert, key, err := ca.client(id, now)
		if err != nil {
			return fmt.Errorf("certificate of %s: %w", id.user, err)
		}
		data, err := clientcmd.Write(kubeconfig(server, ca.pem, cert, key))
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", id.user, err)
		}
		if err := writeSecret(l.kubeconfig(id.file), data); err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", id.user, err)
		}
	}
	return nil
}

func kubeconfig(server string, ca, cert, key []byte) clientcmdapi.Config {
	c := clientcmdapi.NewConfig()
	c.Clusters[contextName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	c.AuthInfos[contextName] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	c.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	c.CurrentContext = contextName
	return *c
}
