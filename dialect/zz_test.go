package dialect_test
import ("testing";"fmt";"github.com/dragoman-go/dragoman/dialect";dragoman "github.com/dragoman-go/dragoman")
func TestZZ(t *testing.T){
 body := "event: response.created\ndata: {\r\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n"
 for _, c := range codecs {
 for _, n := range []int{len(body),32, 1} {
  dec := c.NewStreamDecoder(dialect.DecodeOptions{})
  emit := func(ev dragoman.Event) error { l,_ := dragoman.MarshalEvent(ev); fmt.Println("   ",string(l)); return nil }
  var err error
  for i:=0;i<len(body)&&err==nil;i+=n { err = dec.Feed([]byte(body[i:min(i+n,len(body))]), emit) }
  fmt.Println(c.Dialect(), n, err)
  fmt.Println(dec.Close(emit))
 }}
}
