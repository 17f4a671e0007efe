// The routes of a browser session's JWTs: one makes the JWT that begins a session, the other takes the JWT with the
// outcome of a challenge. src/three-ds decides whether a JWT is valid.

import { JwtCreateRequest, JwtValidateRequest } from '../../../src/three-ds/areq/lookup-request.ts'
import { createJwt } from '../../../src/three-ds/jwt.ts'
import { isProblem } from '../../../src/three-ds/problem.ts'
import { validateJwt } from '../../../src/three-ds/validate.ts'
import type { GatewayApp } from '../app.ts'
import { answerProblem } from './answer.ts'
import { callerOf, SERVICE, type ThreeDsDeps } from './deps.ts'
import { CreatedJwt, ERRORS, ValidatedJwt } from './records.ts'

const TAGS = ['JWT']

export function jwtRoutes(app: GatewayApp, { ports, metrics, clock }: ThreeDsDeps): void {
  app.route({
    method: 'POST',
    url: `${SERVICE}/v2/jwt/create`,
    config: { access: ['THREEDS'] },
    schema: {
      operationId: 'createJwt',
      summary: 'Makes the JWT that a browser begins with; it lives two hours',
      tags: TAGS,
      body: JwtCreateRequest,
      response: { 201: CreatedJwt, ...ERRORS },
    },
    handler: async ({ body, caller }, reply) => {
      const created = await createJwt(ports, callerOf(caller), body)
      return isProblem(created) ? answerProblem(reply, created, clock()) : reply.code(201).send(created)
    },
  })

  app.route({
    method: 'POST',
    url: `${SERVICE}/v2/jwt/validate`,
    config: { access: ['THREEDS'] },
    schema: {
      operationId: 'validateJwt',
      summary: 'Takes the JWT that came back after a challenge, once, and answers the outcome',
      tags: TAGS,
      body: JwtValidateRequest,
      response: { 201: ValidatedJwt, ...ERRORS },
    },
    handler: async ({ body, caller }, reply) => {
      const validated = await validateJwt(ports, callerOf(caller), body)
      if (isProblem(validated)) return answerProblem(reply, validated, clock())
      if (validated.ended) metrics.ended.inc({ outcome: validated.record.state })
      return reply.code(201).send(validated.answer as ValidatedJwt)
    },
  })
}
