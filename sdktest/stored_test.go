package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/dragoman-go/dragoman/sim"
)

// TestStoredResponsesState uses stored responses, item references,
// conversations and compaction through openai-go: with the simulator alone, and through
// the gateway with every upstream.
func TestStoredResponsesState(t *testing.T) {
	server := httptest.NewServer(sim.Handler(sim.Config{}))
	defer server.Close()
	t.Run("simulator", func(t *testing.T) { useStoredState(t, server.URL, "sim/planner") })
	gateway := newGateway(t)
	for _, up := range upstreams {
		t.Run("gateway to "+up, func(t *testing.T) { useStoredState(t, gateway, up+"/sim/planner") })
	}
}

func useStoredState(t *testing.T, server, model string) {
	ctx := context.Background()
	client := openai.NewClient(option.WithBaseURL(server+"/v1/"), option.WithAPIKey("any"), option.WithMaxRetries(0))
	ask := func(change func(*responses.ResponseNewParams), input ...responses.ResponseInputItemUnionParam) (*responses.Response, error) {
		p := responses.ResponseNewParams{
			Model: model, Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input},
			Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction(toolName, citySchema(), false)},
		}
		if change != nil {
			change(&p)
		}
		return client.Responses.New(ctx, p)
	}
	must := func(r *responses.Response, err error) *responses.Response {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	question := responses.ResponseInputItemParamOfMessage("What's the weather in Oslo?", responses.EasyInputMessageRoleUser)
	result := func(callID string) responses.ResponseInputItemUnionParam {
		out := responses.ResponseInputItemParamOfFunctionCallOutput("4 °C")
		out.OfFunctionCallOutput.CallID = openai.String(callID)
		return out
	}
	checkResult := func(what string, r *responses.Response) {
		t.Helper()
		if r.OutputText() != "get_weather says: 4 °C" {
			t.Errorf("%s: %s", what, r.RawJSON())
		}
	}

	first := must(ask(nil, question))
	call := first.Output[0]
	if call.Type != "function_call" {
		t.Fatal(first.RawJSON())
	}
	got := must(client.Responses.Get(ctx, first.ID, responses.ResponseGetParams{}))
	if got.ID != first.ID || got.Status != first.Status || len(got.Output) != 1 || got.Output[0].ID != call.ID || got.Output[0].CallID != call.CallID {
		t.Errorf("got %s, created %s", got.RawJSON(), first.RawJSON())
	}
	chained := must(ask(func(p *responses.ResponseNewParams) { p.PreviousResponseID = openai.String(first.ID) }, result(call.CallID)))
	checkResult("previous_response_id", chained)
	checkResult("item_reference", must(ask(nil, question, responses.ResponseInputItemParamOfItemReference(call.ID), result(call.CallID))))

	var types []string
	pager := client.Responses.InputItems.ListAutoPaging(ctx, chained.ID, responses.InputItemListParams{Limit: openai.Int(1), Order: "asc"})
	for pager.Next() {
		types = append(types, pager.Current().Type)
	}
	if err := pager.Err(); err != nil || strings.Join(types, " ") != "message function_call function_call_output" {
		t.Errorf("%v: %v", types, err)
	}

	conversation, err := client.Conversations.New(ctx, conversations.ConversationNewParams{Items: []responses.ResponseInputItemUnionParam{question}})
	if err != nil {
		t.Fatal(err)
	}
	in := func(p *responses.ResponseNewParams) {
		p.Conversation = responses.ResponseNewParamsConversationUnion{OfString: openai.String(conversation.ID)}
	}
	followUp := must(ask(in, responses.ResponseInputItemParamOfMessage("What's the weather in Oslo, please?", responses.EasyInputMessageRoleUser)))
	checkResult("conversation", must(ask(in, result(followUp.Output[0].CallID))))
	items, err := client.Conversations.Items.List(ctx, conversation.ID, conversations.ItemListParams{})
	if err != nil || len(items.Data) != 5 {
		t.Errorf("%v: %v", items, err)
	}

	compacted, err := client.Responses.Compact(ctx, responses.ResponseCompactParams{
		Model: responses.ResponseCompactParamsModel(model), PreviousResponseID: openai.String(chained.ID),
	})
	if err != nil {
		t.Fatal(err)
	}
	input := responses.ResponseInputParam{}
	if err := json.Unmarshal([]byte(compacted.JSON.Output.Raw()), &input); err != nil {
		t.Fatal(err)
	}
	noTools := func(p *responses.ResponseNewParams) { p.Tools = nil }
	if after := must(ask(noTools, append(input, responses.ResponseInputItemParamOfMessage("Thanks!", responses.EasyInputMessageRoleUser))...)); !strings.Contains(after.OutputText(), "Thanks!") {
		t.Error(after.RawJSON())
	}

	refused := func(what string, err error, status int, id string) {
		t.Helper()
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != status || e.Type != "invalid_request_error" || !strings.Contains(e.Message, id) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = ask(nil, question, responses.ResponseInputItemParamOfItemReference("fc_none"))
	refused("item_reference", err, 404, "fc_none")
	_, err = ask(func(p *responses.ResponseNewParams) { p.PreviousResponseID = openai.String("resp_none") }, question)
	refused("previous_response_id", err, 400, "resp_none")
	unstored := must(ask(func(p *responses.ResponseNewParams) { p.Store = openai.Bool(false) }, question))
	_, err = client.Responses.Get(ctx, unstored.ID, responses.ResponseGetParams{})
	refused("a response that is not stored", err, 404, unstored.ID)
	if err := client.Responses.Delete(ctx, first.ID); err != nil {
		t.Error(err)
	}
	_, err = client.Responses.Get(ctx, first.ID, responses.ResponseGetParams{})
	refused("a deleted response", err, 404, first.ID)
}
