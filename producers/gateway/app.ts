// The types of the HTTP application: the caller of a request, and the access that a route grants. deps.ts has the
// dependencies of routes.
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
import type { ErrorBody } from './error-bodies.ts'

/** The caller of a request, whose credentials were checked. */
export interface Caller {
  client: Client
  /** UUID in lower case. */
  userId: string
  /** The entity where the caller stands: the one of lists that name none. */
  entityId: string
  /** The entity of a Bearer token, for which alone the caller acts: `client.entities` holds no other. Absent: all. */
  onlyEntity?: string | undefined
  /** The roles that the client was granted and that the credentials claim. */
  roles: readonly Role[]
  /** The request's span, if traces are on. */
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
 * Who may call a route: everybody (`public`), or callers that have all of these roles (an empty list: every client that
 * has some role). Each route sets it in its `config`.
 */
export type Access = 'public' | readonly Role[]

declare module 'fastify' {
  interface FastifyInstance {
    /** Those of services that have one of their own. */
    errorBodies: readonly ErrorBody[]
  }
  interface FastifyRequest {
    /** Undefined on public routes. */
    caller: Caller
    /** Null if traces are off or this request isn't traced. */
    span: Span | null
  }
  interface FastifyContextConfig {
    access?: Access
    /** Media types of bodies that are read as a stream; the limits of ordinary bodies don't apply to them. */
    streams?: RegExp
  }
}
