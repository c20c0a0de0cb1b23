// Package configfile reads configuration files: YAML or JSON as a tree of nodes that know
// their position, a reader that reports every unknown or invalid field at its line, and
// the fields that set capabilities by name.
package configfile
