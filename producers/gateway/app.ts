// The HTTP application as its routes see it: the caller of a request, and the access that a route grants. deps.ts holds
// what a route works with.
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
import type { Span } from '../../src/trace/tracer.ts'

/** The sender of a request, once its credentials were checked. */
export interface Caller {
  client: Client
  /** UUID in lower case. */
  userId: string
  /** The client's entity on whose behalf the request is made. */
  entityId: string
  /** The roles that the client was granted and the credentials claim. */
  roles: readonly Role[]
  /** Of the request, where traces are on. */
  span?: Span | undefined
}

/** The fastify instance that a route plugin adds its routes to. */
export type GatewayApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>

/**
 * The access to a route: open to everybody, or to callers with all of these roles (none: every client). Each route
 * names it in its `config`.
 */
export type Access = 'public' | readonly Role[]

declare module 'fastify' {
  interface FastifyRequest {
    /** Absent on public routes. */
    caller: Caller
    /** Where traces are on; null where this request isn't traced. */
    span: Span | null
  }
  interface FastifyContextConfig {
    access?: Access
    /** A body of these types is a stream, to which the limits of ordinary bodies don't apply. */
    streams?: RegExp
  }
}
