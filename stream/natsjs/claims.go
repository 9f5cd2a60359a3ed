package natsjs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// claimsUpdate is the subject at which servers in operator mode take the claims of an account, from users of their system
// account.
const claimsUpdate = "$SYS.REQ.CLAIMS.UPDATE"

// PushAccount sends the signed claims of an account to the servers. They check the operator's signature, disconnect
// revoked users, and pass the claims on to absent servers when these return. It returns when one server has replied.
func (a *Admin) PushAccount(ctx context.Context, token string) error {
	wait, cancel := context.WithTimeout(ctx, a.requests.within)
	defer cancel()
	m, err := a.nc.RequestWithContext(wait, claimsUpdate, []byte(token))
	if err != nil {
		return fmt.Errorf("tell the servers of an account: %w", explain(a.requests.outcome(ctx, wait, err)))
	}
	var answer struct {
		Data *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"data"`
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return errors.New("tell the servers of an account: what answers is no server in operator mode")
	}
	if answer.Error != nil {
		return fmt.Errorf("the server refused the account: %s", answer.Error.Description)
	}
	if answer.Data == nil || answer.Data.Code != 200 {
		return errors.New("tell the servers of an account: the answer says nothing")
	}
	return nil
}
