// The HTTP application that routes are added to, as they see it: who asks, and whom a route is open to. What a route works
// with is handed to it beside (deps.ts).
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type { Role } from '../../src/job/catalogue.ts'
import type { Client } from '../../src/store/access/clients.ts'

/** Who a request is from, once its credentials were checked. */
export interface Caller {
  client: Client
  /** UUID in lower case. */
  userId: string
  /** One of the client's, on whose behalf this request is. */
  entityId: string
  /** Those that the client was granted and the credentials claim. */
  roles: readonly Role[]
}

/** The fastify instance that a route plugin adds its routes to. */
export type GatewayApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>

/** Who may call a route: anybody, or who has all of these roles (none: every client). Each route says it in its `config`. */
export type Access = 'public' | readonly Role[]

declare module 'fastify' {
  interface FastifyRequest {
    /** Not there on public routes. */
    caller: Caller
  }
  interface FastifyContextConfig {
    access?: Access
    /** A body of these types is a stream that may take its time: exempt from the limits of ordinary bodies. */
    streams?: RegExp
  }
}
