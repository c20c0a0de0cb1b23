package oauth_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/dragoman-go/dragoman/mcp/oauth"
)

// A program with a browser, and tokens that outlive it.
func Example() {
	dir, err := oauth.DefaultDir()
	if err != nil {
		panic(err)
	}
	store, err := oauth.NewFileStore(dir, []byte(os.Getenv("TOKEN_STORE_SECRET")))
	if err != nil {
		panic(err)
	}
	auth, err := oauth.New(oauth.Options{
		Server:  "https://mcp.example.com/mcp",
		Store:   store,
		Browser: oauth.OpenBrowser,
		Confirm: func(_ context.Context, login oauth.Login) error {
			fmt.Printf("%s asks you to log in at %s\n", login.Server, login.Host)
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: auth.RoundTripper(nil)}
	resp, err := client.Post("https://mcp.example.com/mcp", "application/json", strings.NewReader(`{}`))
	if err != nil {
		panic(err)
	}
	_ = resp.Body.Close()
}

// A program that acts for itself.
func ExampleClientCredentials() {
	auth, err := oauth.New(oauth.Options{
		Server: "https://mcp.example.com/mcp",
		Issuer: "https://login.example.com",
		Client: oauth.Client{ID: "nightly-job", Secret: os.Getenv("CLIENT_SECRET"), Issuer: "https://login.example.com"},
		Grant:  oauth.ClientCredentials{},
	})
	fmt.Println(auth == nil, err)
}

func ExampleDiagnose() {
	for step := range oauth.Diagnose(context.Background(), "mcp.example.com", oauth.Options{}) {
		fmt.Println(step.Name, step.OK)
		fmt.Println(step.Meaning)
	}
	// Output:
	// request false
	// oauth: server "mcp.example.com": use a URL that begins with https://
}
