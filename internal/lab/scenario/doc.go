// Package scenario plays stories in the lab: text files that apply objects,
// wait for pods, nodes and machines, break things, and state what must be true
// at the end. The demo, the lab's tests and `nap lab run FILE` speak this one
// language.
//
// A scenario is a txtar archive: commands first, then the files that they name.
// One command a line, `#` starts a comment, words are separated by blanks and
// may be quoted with double quotes.
//
//	step TEXT                     start a step: a heading, and a row in the closing table
//	say TEXT                      print a line
//	apply FILE                    server-side apply of every object in FILE
//	delete KIND NAME              delete an object (namespace default)
//	scale KIND NAME REPLICAS      set spec.replicas
//	load SELECTOR cpu=AMOUNT [memory=AMOUNT]
//	                              what the pods use together, for the Metrics API
//	resize SELECTOR cpu=AMOUNT [memory=AMOUNT]
//	                              change what the running pods ask for, in place
//	wait pods [SELECTOR] running=N [pending=N] [resizing=N] within DURATION
//	wait nodes [SELECTOR] ready=N within DURATION
//	wait machines [K=V...] count=N within DURATION
//	                              running machines; K: size, zone, priority, and
//	                              trouble=yes|no, whether they say that something is wrong
//	wait machines accepted=N within DURATION
//	                              all that Azure has accepted and not removed yet
//	wait claims count=N within DURATION
//	fault KIND [K=V...]           add a fault to the simulated Azure
//	fault clear                   remove all faults
//	kill COMPONENT                kill -9 a part of the lab; the supervisor restarts it
//	chaos kill COMPONENT times=N every=MIN..MAX seed=N
//	                              do so in the background, at random moments
//	chaos wait                    wait until all those kills have happened
//	expect leaks none             no VM, NIC or disk without a node
//	expect bought <=N             at most N machines bought since the start
//	expect bought-twice none      no claim for which more than one VM was created
//	expect pods [SELECTOR] on K=V [within DURATION]
//	                              every running pod's node carries the label K=V
//	table                         print the closing table
//
// A command that fails ends the scenario with its line number and with what was
// true instead.
package scenario
