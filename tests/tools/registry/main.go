// The distribution project's registry, with artifacts in a folder and without its clouds' storage.
//
//	registry serve CONFIG
//	registry token CERTIFICATE KEY USER PASSWORD    a token server, as the registries of clouds have one
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/silly"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

func main() {
	if len(os.Args) == 6 && os.Args[1] == "token" {
		log.Fatal(serveTokens(os.Args[2], os.Args[3], os.Args[4], os.Args[5]))
	}
	if err := registry.RootCmd.Execute(); err != nil {
		os.Exit(1)
	}
}

// serveTokens gives a token to the one user that it knows; a registry with the auth "silly" takes any.
func serveTokens(certificate, key, user, password string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on %s\n", listener.Addr())
	answer := func(writer http.ResponseWriter, request *http.Request) {
		name, given, _ := request.BasicAuth()
		if name != user || given != password {
			writer.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(os.Stderr, "token for %s\n", request.URL.Query().Get("scope"))
		fmt.Fprint(writer, `{"token": "of-the-token-server"}`)
	}
	return http.ServeTLS(listener, http.HandlerFunc(answer), certificate, key)
}
