// How the routes of this service say no by a number of their own. What fastify or the server's core refuses is rendered
// by the service's face (../faces.ts); the body is the same.
import type { FastifyReply } from 'fastify'
import { bodyOf, type Problem } from '../../../src/three-ds/problem.ts'

/** Any reply, whatever its route's schema says of its bodies. */
export function answerProblem<R extends object>(reply: R, said: Problem, now: number): R {
  const { status, body } = bodyOf(said, now)
  const answer = reply as unknown as FastifyReply
  answer.code(status).type('application/json; charset=utf-8').serializer(JSON.stringify).send(body)
  return reply
}
