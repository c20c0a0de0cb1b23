package gateway

import (
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// checkRoles refuses a request with a message whose role the dialect does not define, as
// the vendor does.
func checkRoles(d *wire.Body, req *dragoman.Request, body []byte) error {
	if d.AnyRole {
		return nil
	}
	for i := range req.Messages {
		switch role := req.Messages[i].Role; role {
		case dragoman.RoleUser, dragoman.RoleAssistant, dragoman.RoleTool, dragoman.RoleSystem, dragoman.RoleDeveloper:
		default:
			return unknownRole(d, string(role), body)
		}
	}
	return nil
}

// unknownRole returns an error with the path of an unknown role in a body.
func unknownRole(d *wire.Body, role string, body []byte) error {
	field := d.Messages
	path := field
	r := jsonwire.NewReader(body)
	for key := range r.Object() {
		if string(key) != field || r.Kind() != '[' {
			r.Skip()
			continue
		}
		for i := range r.Array() {
			if r.Kind() != '{' {
				r.Skip()
				continue
			}
			for key := range r.Object() {
				if string(key) != "role" || r.Kind() != '"' {
					r.Skip()
				} else if r.String() == role && path == field {
					path = fmt.Sprintf("%s[%d].role", field, i)
				}
			}
		}
	}
	return &dragoman.APIError{
		Class: dragoman.ErrorBadRequest, Param: path,
		Message: fmt.Sprintf("%s: unknown role %.80q: use %s", path, role, strings.Join(d.Roles, ", ")),
	}
}
