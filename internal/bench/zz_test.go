package main
import ("time";"testing";"os";"context";"fmt")
func TestCell(t *testing.T){
 l:=&lab{dir:t.TempDir(),log:os.Stdout}
 ctx:=context.Background()
 b,err:=startBroker(ctx,l,syncLazily); if err!=nil{t.Fatal(err)}
 defer b.end()
 for _,c:=range []cell{{dim:100,bundle:64,sync:syncLazily},{dim:100,bundle:64,sync:syncLazily}}{
  if err:=c.onlyMade(ctx,l,b);err!=nil{t.Fatal(err)}
 }
 fmt.Println()
}
func (c cell) onlyMade(ctx context.Context, l *lab, b *broker) error {
	r, err := newRaw(ctx, l, b, c.memory)
	if err != nil { return err }
	defer r.close()
	made, err := c.inTurns(ctx, l, b, r, c.users(l), func(w *world) (filler, error) {
		s, err := w.newSender()
		return func(round uint64) (time.Duration, error) { return s.fill(round, c.users(l), c.bundle) }, err
	})
	fmt.Println(made.rates.median(), made.raw.median(), made.rates.over(made.raw).median())
	return err
}
