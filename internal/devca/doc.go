// Package devca writes what a broker with TLS and accounts needs: a certificate authority, certificates, keys of users,
// and the server's configuration.
//
// [Write] is for development and for trying the shipped configuration: it names every user in the configuration, and
// gives each an NKey and a certificate. The authority's private key is dropped when the certificates are signed, so
// nobody can add one; for another host or publisher write another folder.
//
// A [Site] is for production: a broker in operator mode. Its servers know the operator's public key and accept users
// that the operator's accounts signed. The server's own parser makes its accounts and permissions from the shipped
// configuration.
package devca
