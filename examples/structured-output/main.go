// Structured-output decodes the final answer of an agent into a Go value. The schema for the
// model is derived from the type; an answer that does not match it goes back to the model.
//
//	$ go run ./examples/structured-output
//	{Name:Ada Lovelace Email:ada@example.com Seats:3}
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
)

// Booking is the content of a mail. The doc tags are part of the schema.
type Booking struct {
	Name  string `json:"name" doc:"full name of the customer"`
	Email string `json:"email" jsonschema:"format=email"`
	Seats int    `json:"seats" jsonschema:"minimum=1,maximum=9"`
}

func main() {
	a := agent.Agent{
		Model:        provider.MustOpen("sim/planner"),
		Instructions: "Extract the booking.",
	}
	mail := "Please book 3 seats for Ada Lovelace, ada@example.com."
	booking, _, err := agent.Generate[Booking](context.Background(), a, mail)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", booking)
}
