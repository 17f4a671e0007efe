// Answers a request with an error number of the 3-D Secure service. For refusals of fastify or the server,
// error-body.ts makes the same body.
import { bodyOf, type Problem } from '../../../src/three-ds/problem.ts'
import { type Reply, sendJson } from '../server/replies.ts'

export function answerProblem<R extends Reply>(reply: R, said: Problem, now: number): R {
  const { status, body } = bodyOf(said, now)
  return sendJson(reply, status, body)
}
