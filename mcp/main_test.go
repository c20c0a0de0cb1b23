package mcp_test

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// serveEnv makes the test binary a server over standard input and output.
const serveEnv = "DRAGOMAN_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(serveEnv); kind != "" {
		serveStdio(context.Background(), kind)
		return
	}
	if os.Getenv(killStore) != "" {
		if err := killChild(context.Background()); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
