package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// bom is an SPDX 2.3 document, with the fields that we write.
type bom struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      bomCreation    `json:"creationInfo"`
	Packages      []bomPackage   `json:"packages"`
	Relationships []bomRelations `json:"relationships"`
}

type bomCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type bomPackage struct {
	Name     string        `json:"name"`
	ID       string        `json:"SPDXID"`
	Version  string        `json:"versionInfo"`
	Download string        `json:"downloadLocation"`
	Analyzed bool          `json:"filesAnalyzed"`
	License  string        `json:"licenseDeclared"`
	Refs     []bomExternal `json:"externalRefs"`
	Comment  string        `json:"comment,omitempty"`
}

type bomExternal struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type bomRelations struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// writeBOM lists the modules that are linked into the command, as the build recorded them.
func writeBOM(o options, made time.Time) (string, error) {
	program, err := build(o, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", err
	}
	doc := bom{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT",
		Name:      command + "-" + o.version,
		Namespace: fmt.Sprintf("https://%s/spdx/%s", modulePath, o.version),
		Creation:  bomCreation{made.Format(time.RFC3339), []string{"Tool: " + modulePath + "/internal/repo/release"}},
		Packages:  []bomPackage{bomModule(modulePath, o.version, "Apache-2.0", "")},
	}
	root := doc.Packages[0].ID
	doc.Relationships = []bomRelations{{doc.ID, "DESCRIBES", root}}
	add := func(p bomPackage) {
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, bomRelations{root, "DEPENDS_ON", p.ID})
	}
	add(bomModule("std", strings.TrimPrefix(info.GoVersion, "go"), "BSD-3-Clause", "the Go standard library"))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(bomModule(m.Path, m.Version, "NOASSERTION", "go.sum "+m.Sum))
	}
	file := filepath.Join(o.out, strings.Join([]string{command, o.version, "sbom.spdx.json"}, "_"))
	return file, create(file, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(doc)
	})
}

// bomModule describes one module. An SPDX id has letters, digits, "." and "-" only.
func bomModule(path, version, license, comment string) bomPackage {
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, path+"-"+version)
	return bomPackage{
		Name: path, ID: "SPDXRef-Package-" + id, Version: version, Download: "NOASSERTION", License: license, Comment: comment,
		Refs: []bomExternal{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}
