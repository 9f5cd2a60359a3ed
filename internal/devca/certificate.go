package devca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// An authority signs certificates while it is in memory.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	begin  time.Time
	end    time.Time
	serial int64
}

// backdate is the time by which certificates begin early, for machines whose clocks are behind.
const backdate = 5 * time.Minute

func newAuthority(name string, now time.Time, lifetime time.Duration) (*authority, error) {
	a := &authority{begin: now.Add(-backdate), end: now.Add(lifetime)}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	template := a.template(name)
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	return a, nil
}

func (a *authority) template(name string) *x509.Certificate {
	a.serial++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{Organization: []string{"panlearn"}, CommonName: name},
		NotBefore: a.begin, NotAfter: a.end,
	}
}

// issue makes a key and a certificate for it, both as PEM. Hosts make it a server's certificate, none a client's.
func (a *authority) issue(name string, hosts []string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	template := a.template(name)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(hosts) > 0 { // a link between two servers has one of them as its client
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", pkcs8), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
