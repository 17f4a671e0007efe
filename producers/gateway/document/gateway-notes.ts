// The notes of the token service in the gateway's OpenAPI document, with what the operator has configured.
import { FIELD_NOTES } from '../../../src/job/describe/field-notes.ts'
import { BRANDS } from '../../../src/token/brand.ts'
import { BATCH_OPERATIONS, BATCH_PROPERTIES } from './batch-notes.ts'
import { CARD_PROPERTIES, cardOperations } from './card-notes.ts'
import { ERROR_NOTES } from './error-notes.ts'
import type { DocumentNotes } from './notes.ts'
import { REFERENCE_OPERATIONS, REFERENCE_PROPERTIES } from './reference-notes.ts'

export interface GatewayChoices {
  /** Values of `reuse_token_type` other than INTERNAL. */
  thirdPartyTypes: readonly string[]
  /** Values of `card_brand` other than the international brands. */
  localSchemes: readonly string[]
}

const TAGS = [
  { name: 'Card tokens', description: 'A card becomes a token; the token is read, changed, suspended and deleted.' },
  { name: 'Source references', description: 'Whose card a token stands for, and what must travel with it.' },
  { name: 'Operations', description: 'What became of a write that was answered 202.' },
  { name: 'Batches', description: 'Many records in one body.' },
  { name: 'Capture keys', description: 'The public keys that cards are encrypted to.' },
]

/** The part of the rule of `reuse_token_type` that JSON Schema can express. */
function thirdPartyRule(thirdPartyTypes: readonly string[]): object {
  const foreign = { properties: { reuse_token_type: { enum: thirdPartyTypes } }, required: ['reuse_token_type'] }
  const needed = {
    required: ['reuse_token_details', 'token_context'],
    properties: {
      token_type: { enum: ['REUSE', 'REUSE_AND_ANALYTICS'] },
      token_context: { anyOf: [{ required: ['entity_id'] }, { required: ['payment_provider_contract'] }] },
    },
  }
  return Object.fromEntries([
    ['if', foreign],
    ['then', needed],
  ])
}

export function tokenNotes({ thirdPartyTypes, localSchemes }: GatewayChoices): DocumentNotes {
  const types = ['INTERNAL', ...thirdPartyTypes]
  return {
    tags: TAGS,
    properties: {
      ...withKeywords(FIELD_NOTES, {
        reuse_token_type: { enum: types },
        card_brand: { enum: [...BRANDS, ...localSchemes] },
      }),
      ...withKeywords(CARD_PROPERTIES, { '200.reuse_token_type': { enum: types } }),
      ...REFERENCE_PROPERTIES,
      ...BATCH_PROPERTIES,
      ...ERROR_NOTES,
      'createUpdateToken.body': { ...thirdPartyRule(thirdPartyTypes) },
    },
    operations: {
      ...cardOperations(thirdPartyTypes[0]),
      ...REFERENCE_OPERATIONS,
      ...BATCH_OPERATIONS,
    },
  }
}

/** `notes` with further keywords for some properties. */
function withKeywords(notes: DocumentNotes['properties'], more: Record<string, object>): DocumentNotes['properties'] {
  const noted = Object.entries(more).map(([name, keywords]) => {
    const note = notes[name]
    return [name, { ...(typeof note === 'string' ? { description: note } : note), ...keywords }]
  })
  return { ...notes, ...Object.fromEntries(noted) }
}
