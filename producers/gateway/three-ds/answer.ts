// How the routes of this service say no by a number of their own. What fastify or the server's core refuses is rendered
// by the service's face (../server/error-bodies.ts); the body is the same.
import { bodyOf, type Problem } from '../../../src/three-ds/problem.ts'
import { type Reply, sendJson } from '../server/replies.ts'

export function answerProblem<R extends Reply>(reply: R, said: Problem, now: number): R {
  const { status, body } = bodyOf(said, now)
  return sendJson(reply, status, body)
}
