// SPDX-License-Identifier: Apache-2.0

// Package mutualtls turns the --tls-* flags of the test peers into gRPC credentials.
package mutualtls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Files names the PEM files of one side. All three are given, or none (plaintext).
type Files struct {
	CA, Cert, Key string
}

// RegisterFlags adds --tls-ca, --tls-cert and --tls-key to the program's flags.
func RegisterFlags() *Files {
	files := &Files{}
	flag.StringVar(&files.CA, "tls-ca", "", "PEM `file` of the authority that signed the peer's certificate")
	flag.StringVar(&files.Cert, "tls-cert", "", "PEM `file` of our certificate")
	flag.StringVar(&files.Key, "tls-key", "", "PEM `file` of our key")
	return files
}

// ServerCredentials demands a certificate of every client.
func (f *Files) ServerCredentials() (credentials.TransportCredentials, error) {
	if *f == (Files{}) {
		return insecure.NewCredentials(), nil
	}
	cert, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}), nil
}

// ClientCredentials expects name in the server's certificate; with an empty name, the host of the address.
func (f *Files) ClientCredentials(name string) (credentials.TransportCredentials, error) {
	if *f == (Files{}) {
		return insecure.NewCredentials(), nil
	}
	cert, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		RootCAs:      pool,
		ServerName:   name,
	}), nil
}

func (f *Files) load() (tls.Certificate, *x509.CertPool, error) {
	if f.CA == "" || f.Cert == "" || f.Key == "" {
		return tls.Certificate{}, nil, errors.New("--tls-ca, --tls-cert and --tls-key belong together")
	}
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return tls.Certificate{}, nil, fmt.Errorf("%s holds no certificate", f.CA)
	}
	return cert, pool, nil
}
