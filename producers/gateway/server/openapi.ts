// The OpenAPI 3.1 document, made from the schemas that check requests, and its page at /docs.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import { createJsonSchemaTransform } from 'fastify-type-provider-zod'
import type { Access, GatewayApp } from '../app.ts'
import { complete, type Known, type OpenApi } from '../document/complete.ts'
import { accessNote, type DocumentNotes } from '../document/notes.ts'

const toJsonSchema = createJsonSchemaTransform({ zodToJsonConfig: { target: 'draft-2020-12' } })

export interface DocumentInfo {
  title: string
  description: string
}

const BEARER =
  'Signed by a key of the client, with `sub` (user id), `entity_id`, `roles`, and `exp` or `iat`; `kid` may be absent where the client has exactly one active key.'

/** Adds the document. Call it before any route is added. */
export async function documentRoutes(app: GatewayApp, info: DocumentInfo, notes: DocumentNotes): Promise<void> {
  const known: Known = { notes, errorBodies: app.errorBodies }
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { ...info, version: '2.38.1' },
      tags: [...notes.tags],
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          basic: { type: 'http', scheme: 'basic', description: 'User id (UUID) and API key.' },
          bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: BEARER },
        },
      },
      security: [{ basic: [] }, { bearer: [] }],
    },
    transform: input => {
      const { schema, url } = toJsonSchema(input as never)
      const { access } = (input.route.config ?? {}) as { access?: Access }
      const { operationId } = schema as { operationId?: string }
      const said = [notes.operations[operationId ?? '']?.description, accessNote(access)].filter(Boolean).join(' ')
      const open = access === 'public' ? { security: [] } : {}
      return { schema: { ...schema, ...(said && { description: said }), ...open }, url }
    },
    transformObject: input =>
      complete(('openapiObject' in input ? input.openapiObject : {}) as OpenApi, known) as never,
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    // Only the page's own scripts and styles are allowed. Plain http stays possible for a local installation.
    staticCSP: {
      'default-src': "'none'",
      'base-uri': "'none'",
      'connect-src': "'self'",
      'font-src': "'self' data:",
      'frame-ancestors': "'none'",
      'img-src': "'self' data:",
      'script-src': "'self'",
      'style-src': "'self' 'unsafe-inline'",
    },
    uiConfig: { deepLinking: false, tryItOutEnabled: false },
  })
}
