// The token service: what the gateway serves without any feature, in the order of its OpenAPI document.
import { batchRoutes } from '../batches/routes.ts'
import type { Service } from '../deps.ts'
import { type GatewayChoices, tokenNotes } from '../document/gateway-notes.ts'
import { operationRoutes } from '../operations/operation-routes.ts'
import { opsRoutes } from '../server/ops.ts'
import { captureKeyRoutes } from './capture-keys.ts'
import { cardRoutes } from './cards.ts'
import { referenceRoutes } from './references.ts'

/** `choices`: the operator's settings that the document lists. */
export function tokenService(choices: GatewayChoices): Service {
  return {
    routes: [cardRoutes, referenceRoutes, operationRoutes, batchRoutes, captureKeyRoutes],
    notes: tokenNotes(choices),
  }
}

export const opsService: Service = { routes: [opsRoutes], notes: { tags: [], properties: {}, operations: {} } }
