package skill_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/skill"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "skills")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text := "---\nname: release-notes\ndescription: Write release notes. Use it when a version is released.\n---\nOne line for each change.\n"
	if err := os.WriteFile(filepath.Join(dir, skill.FileName), []byte(text), 0o644); err != nil {
		panic(err)
	}

	skills, err := skill.Open(dir)
	if err != nil {
		panic(err)
	}
	for _, k := range skills.Skills() {
		fmt.Println(k.Name, "-", k.Description)
	}
	for _, t := range skills.Tools() {
		fmt.Println(t.Spec().Name)
	}
	// Output:
	// release-notes - Write release notes. Use it when a version is released.
	// load_skill
	// read_skill_file
}

func Example() {
	model := provider.MustOpen("sim/planner")
	pins := &skill.Pins{} // read from a file that is committed
	accepted := func() (*skill.Set, error) {
		skills, err := skill.Find(".")
		if err != nil {
			return nil, err
		}
		return skills.Only(func(k *skill.Skill) bool { return pins.Check(k) == nil }), nil
	}
	skills, err := accepted()
	if err != nil {
		panic(err)
	}
	a := agent.Agent{
		Model:        model,
		Instructions: "You maintain this repository." + skills.Instructions(),
		Tools:        skills.Tools(),
	}
	fmt.Println(a.Instructions)
	// Output: You maintain this repository.
}
