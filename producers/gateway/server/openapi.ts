// The OpenAPI 3.1 document, made from the schemas that requests are checked by, and its rendering at /docs.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import { createJsonSchemaTransform } from 'fastify-type-provider-zod'
import type { Access, GatewayApp } from '../deps.ts'

const toJsonSchema = createJsonSchemaTransform({ zodToJsonConfig: { target: 'draft-2020-12' } })

export interface DocumentInfo {
  title: string
  description: string
}

export const GATEWAY_DOCUMENT: DocumentInfo = {
  title: 'tokenmill',
  description: 'Card tokens, reports and batches over HTTP. Cards are encrypted by the caller.',
}

/** Before any route is added. */
export async function documentRoutes(app: GatewayApp, document: DocumentInfo): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { ...document, version: '2.38.1' },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          basic: { type: 'http', scheme: 'basic', description: 'User id (UUID) and API key.' },
          bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        },
      },
      security: [{ basic: [] }, { bearer: [] }],
    },
    transform: input => {
      const { schema, url } = toJsonSchema(input as never)
      const access = (input.route.config as { access?: Access } | undefined)?.access
      return { schema: access === 'public' ? { ...schema, security: [] } : schema, url }
    },
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    // The pages' own scripts and styles, and nothing from elsewhere; plain http stays possible on a machine of one's own.
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
