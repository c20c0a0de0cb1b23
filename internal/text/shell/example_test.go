package shell_test

import (
	"fmt"

	"github.com/dragoman-go/dragoman/internal/text/shell"
)

// Allowed commands are listed word by word, and no shell interprets them.
func ExampleAllow() {
	list, err := shell.Allow("go test ...", "go vet *", "git log ... !--output !-o")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(list.Check(`go test -run='TestA|TestB' ./...`))
	fmt.Println(list.Check(`git log --output=/etc/cron.d/x`))
	fmt.Println(list.Check(`rm -rf /`))
	fmt.Println(list.Check(`go vet ./... | tee log`))
	// Output:
	// [go test -run=TestA|TestB ./...] <nil>
	// [] this command is not allowed: "git" may run only as: git log ... !--output !-o
	// [] this command is not allowed: "rm" is not on the list of allowed commands: go test ...; go vet *; git log ... !--output !-o
	// [] this command is not allowed: | is not allowed: no shell runs the command, so there are no operators; quote it if it belongs to an argument
}

// Every program of a script must be allowed.
func ExampleParseScript() {
	list, err := shell.Allow("ls ...", "wc -l")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{`ls src | wc -l`, `ls $(rm -r src)`, `eval "$x"`} {
		c, _ := shell.ParseScript(text) // the error is in it
		fmt.Println(c.Programs, list.Allows(&c))
	}
	// Output:
	// [ls wc] <nil>
	// [ls rm] this command is not allowed: "rm" is not on the list of allowed commands: ls ...; wc -l
	// [eval ?] this command is not allowed: "eval" is not on the list of allowed commands: ls ...; wc -l
}
