// The distribution project's registry, with artifacts in a folder and without its clouds' storage.
//
//	registry serve CONFIG
//	registry token CERTIFICATE KEY USER PASSWORD    a token server, as the registries of clouds have one
//	registry front CERTIFICATE KEY STORAGE          wants a login, and sends who has one to a storage
//	registry storage CERTIFICATE KEY                sends on once within itself, and tells what it was shown
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
	if len(os.Args) == 5 && os.Args[1] == "front" {
		log.Fatal(serve(os.Args[2], os.Args[3], front(os.Args[4])))
	}
	if len(os.Args) == 4 && os.Args[1] == "storage" {
		log.Fatal(serve(os.Args[2], os.Args[3], storage))
	}
	if err := registry.RootCmd.Execute(); err != nil {
		os.Exit(1)
	}
}

func serve(certificate, key string, answer http.HandlerFunc) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on %s\n", listener.Addr())
	return http.ServeTLS(listener, answer, certificate, key)
}

func front(target string) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") == "" {
			writer.Header().Set("WWW-Authenticate", `Basic realm="front"`)
			writer.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(writer, request, target+"/first", http.StatusTemporaryRedirect)
	}
}

func storage(writer http.ResponseWriter, request *http.Request) {
	fmt.Fprintf(os.Stderr, "%s shown %q\n", request.URL.Path, request.Header.Get("Authorization"))
	if request.URL.Path == "/first" {
		http.Redirect(writer, request, "/second", http.StatusTemporaryRedirect)
		return
	}
	writer.Header().Set("WWW-Authenticate", `Bearer realm="https://localhost:1/thief"`)
	writer.WriteHeader(http.StatusUnauthorized)
}

// serveTokens gives a token to the one user that it knows; a registry with the auth "silly" takes any.
func serveTokens(certificate, key, user, password string) error {
	answer := func(writer http.ResponseWriter, request *http.Request) {
		name, given, _ := request.BasicAuth()
		if name != user || given != password {
			writer.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(os.Stderr, "token for %s\n", request.URL.Query().Get("scope"))
		fmt.Fprint(writer, `{"token": "of-the-token-server"}`)
	}
	return serve(certificate, key, answer)
}
