package main

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// inspect describes PEM blocks without what is random of them. A certificate is checked against the first one of
// the text, and a key against the certificate before it.
func inspect(text string) (string, error) {
	var lines []string
	var first, last *x509.Certificate
	for rest := []byte(text); ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			line, err := key(block, last)
			if err != nil {
				return "", err
			}
			lines = append(lines, line)
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", err
		}
		if first == nil {
			first = certificate
		}
		lines = append(lines, describe(certificate, first))
		last = certificate
	}
	if len(lines) == 0 {
		return "", errors.New("no PEM block")
	}
	return strings.Join(lines, "\n"), nil
}

func describe(c, first *x509.Certificate) string {
	signed := "by the first"
	if err := first.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature); err != nil {
		signed = err.Error()
	}
	return fmt.Sprintf(
		"certificate v%d %q issued by %q for %s, names %q, addresses %v, CA %t (%t, %d), usage %d %v, signed with %s %s, "+
			"key %s, subject key %d bytes, authority key %t, critical %v",
		c.Version, c.Subject, c.Issuer, c.NotAfter.Sub(c.NotBefore), c.DNSNames, c.IPAddresses, c.IsCA,
		c.BasicConstraintsValid, c.MaxPathLen, c.KeyUsage, c.ExtKeyUsage, c.SignatureAlgorithm, signed,
		c.PublicKeyAlgorithm, len(c.SubjectKeyId), string(c.AuthorityKeyId) == string(first.SubjectKeyId), extensions(c))
}

func extensions(c *x509.Certificate) []string {
	var all []string
	for _, extension := range c.Extensions {
		all = append(all, fmt.Sprintf("%s %t", extension.Id, extension.Critical))
	}
	return all
}

func key(block *pem.Block, of *x509.Certificate) (string, error) {
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return "", err
		}
		if err := key.Validate(); err != nil {
			return "", err
		}
		matches := of != nil && key.PublicKey.Equal(of.PublicKey.(*rsa.PublicKey))
		return fmt.Sprintf("RSA key of %d bits, exponent %d, of the certificate: %t", key.N.BitLen(), key.E, matches), nil
	case "EC PRIVATE KEY":
		key, err := x509.ParseECPrivateKey(block.Bytes)
		if err != nil {
			return "", err
		}
		var written struct {
			Version    int
			PrivateKey []byte
			Curve      asn1.ObjectIdentifier `asn1:"optional,explicit,tag:0"`
			PublicKey  asn1.BitString        `asn1:"optional,explicit,tag:1"`
		}
		if _, err := asn1.Unmarshal(block.Bytes, &written); err != nil {
			return "", err
		}
		own, err := key.PublicKey.ECDH()
		if err != nil {
			return "", err
		}
		matches := string(own.Bytes()) == string(written.PublicKey.Bytes)
		return fmt.Sprintf("EC key of %s, public key is its own: %t, %v", curve(key), matches, written.Curve), nil
	case "DSA PRIVATE KEY":
		var key struct {
			Version       int
			P, Q, G, Y, X *big.Int
		}
		if _, err := asn1.Unmarshal(block.Bytes, &key); err != nil {
			return "", err
		}
		rest := new(big.Int).Mod(new(big.Int).Sub(key.P, big.NewInt(1)), key.Q)
		sound := key.P.ProbablyPrime(20) && key.Q.ProbablyPrime(20) && rest.Sign() == 0 &&
			new(big.Int).Exp(key.G, key.Q, key.P).Cmp(big.NewInt(1)) == 0 && key.G.Cmp(big.NewInt(1)) > 0 &&
			new(big.Int).Exp(key.G, key.X, key.P).Cmp(key.Y) == 0
		return fmt.Sprintf("DSA key of %d and %d bits, sound: %t", key.P.BitLen(), key.Q.BitLen(), sound), nil
	}
	return "", fmt.Errorf("unknown block %q", block.Type)
}

func curve(key *ecdsa.PrivateKey) string { return key.Curve.Params().Name }
