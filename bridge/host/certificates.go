package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// serverName is the name that a plugin's certificate carries.
const serverName = "localhost"

// credentials let this host and one plugin know each other, for the life of that plugin. P-256, since BoringSSL (pip's
// grpcio) refuses the P-521 of go-plugin's AutoMTLS.
type credentials struct {
	host   *tls.Config
	plugin []byte // JSON for the plugin's pipe
}

func newCredentials() (*credentials, error) {
	host, err := newPair("samebits host")
	if err != nil {
		return nil, err
	}
	plugin, err := newPair("samebits plugin")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(host.certificate, host.key)
	if err != nil {
		return nil, fmt.Errorf("host certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(plugin.certificate)
	message, err := json.Marshal(map[string]string{
		"certificate": string(plugin.certificate), "key": string(plugin.key), "ca": string(host.certificate),
	})
	if err != nil {
		return nil, fmt.Errorf("plugin credentials: %w", err)
	}
	return &credentials{
		host: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots, ServerName: serverName,
			MinVersion: tls.VersionTLS13},
		plugin: message,
	}, nil
}

type pair struct{ certificate, key []byte } // PEM

// newPair makes a self-signed certificate: it is its own authority, so the other side trusts it and no other.
func newPair(name string) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("key of %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return pair{}, fmt.Errorf("serial of %s: %w", name, err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{serverName},
		// Clocks step back; a plugin does not outlive a month.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(30 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("key of %s: %w", name, err)
	}
	return pair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}
