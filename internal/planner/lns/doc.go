// Package lns improves small plans by large neighbourhood search (Shaw 1998): destroy a
// part of the plan, repair it in another way, and accept or reject the result.
//
//	guide    classes with stranded pods come first, in a plan from the beginning
//	around   pods that only dearer plans place stay; everything else is planned again
//	destroy  drops one to four places, at times all pods of one class or everything
//	repair   lets the pods of the other places enter again, one after the other, so
//	         that every rule is checked again, and places the rest by a random
//	         strategy, in a random order of classes, with random keeping of room
//	accept   a plan that is not worse than the current one becomes the current one, and
//	         so does, in half of all cases, one that places as many pods and costs
//	         less than a tenth more than the best plan
//
// Random numbers come from the seed of the policy. Without a clock the number of trials
// follows from the budget, and the result depends on nothing but the problem.
//
// See docs/planner.md, section "Large neighbourhood search".
package lns
