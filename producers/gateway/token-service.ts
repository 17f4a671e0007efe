// The token service: what the gateway serves without any feature, in the order of its OpenAPI document.

import { batchRoutes } from './batches/routes.ts'
import type { GatewayService } from './deps.ts'
import { type GatewayChoices, tokenNotes } from './document/gateway-notes.ts'
import { operationRoutes } from './operations/operation-routes.ts'
import { opsRoutes } from './server/ops.ts'
import { captureKeyRoutes } from './tokens/capture-keys.ts'
import { cardRoutes } from './tokens/cards.ts'
import { referenceRoutes } from './tokens/references.ts'

/** `choices`: the operator's settings that the document lists. */
export function tokenService(choices: GatewayChoices): GatewayService {
  return {
    routes: [cardRoutes, referenceRoutes, operationRoutes, batchRoutes, captureKeyRoutes],
    notes: tokenNotes(choices),
  }
}

export const opsService: GatewayService = { routes: [opsRoutes], notes: { tags: [], properties: {}, operations: {} } }
