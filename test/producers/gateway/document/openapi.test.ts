// The OpenAPI documents as running processes serve them: they are complete, their examples are valid, and they fit the
// settings of the installation.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { ReportOrder } from '../../../../producers/http/messages/reports.ts'
import { REASONS } from '../../../../src/errors.ts'
import { parse } from '../../../../src/job/refusal.ts'
import { TokenCreate } from '../../../../src/job/token-create.ts'
import { TokenUpdate } from '../../../../src/job/token-update.ts'
import { openSchemeSimulator } from '../../../../src/simulate/scheme/scheme.ts'
import { JwtCreateRequest, JwtValidateRequest, LookupRequest } from '../../../../src/three-ds/areq/lookup-request.ts'
import { BRANDS } from '../../../../src/token/brand.ts'
import { currencies, isCurrency } from '../../../../src/token/currency.ts'
import { type Caller, openGatewayFor } from '../bundle.ts'
import { type HttpBundle, openHttpBundle } from '../three-ds/bundle.ts'
import {
  misfits,
  type OpenApi,
  operationsOf,
  refusalsOf,
  type Schema,
  undescribed,
  unexampled,
  valuesOf,
} from './document-walk.ts'

const DOCUMENTS = ['gateway', 'three-ds'] as const

/** The zod schemas of requests, because JSON Schema can't express all their rules. */
const CHECKS: Record<string, z.ZodType> = {
  createUpdateToken: TokenCreate,
  updateToken: TokenUpdate.omit({ id: true }),
  requestReport: ReportOrder,
  lookup: LookupRequest,
  createJwt: JwtCreateRequest,
  validateJwt: JwtValidateRequest,
}

let bundle: HttpBundle
let gateway: Caller
const documents = {} as Record<(typeof DOCUMENTS)[number], OpenApi>
const folder = mkdtempSync(join(tmpdir(), 'openapi-'))

beforeAll(async () => {
  bundle = await openHttpBundle()
  // With a network in the scheme file the document also has the operation for its notifications.
  const simulator = await openSchemeSimulator({ host: '127.0.0.1', port: 0, folder, ratePerSecond: 100, latencyMs: 0 })
  await simulator.close()
  gateway = await openGatewayFor(bundle.installation, {
    TOKENMILL_SCHEME_FILE: simulator.schemeFile,
    TOKENMILL_THIRD_PARTY_TYPES: 'ACME,OTHER',
    TOKENMILL_LOCAL_SCHEMES: 'GIROCARD',
  })
  const read = async (url: string) => (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi
  documents.gateway = await read(gateway.url)
  documents['three-ds'] = await read(bundle.url)
})
afterAll(async () => {
  await gateway?.close()
  await bundle?.close()
  rmSync(folder, { recursive: true, force: true })
})

describe.each(DOCUMENTS)('the document of %s', name => {
  it('is OpenAPI 3.1 by its own schema', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(documents[name]) as never)
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined })
  })

  it('describes every property, parameter, answer, operation and group', () => {
    expect(operationsOf(documents[name]).length).toBeGreaterThan(5)
    expect(undescribed(documents[name])).toEqual([])
  })

  it('shows an example of every request, every answer and every error', () => {
    expect(unexampled(documents[name])).toEqual([])
  })

  it('has no example that its own schema refuses', () => {
    expect(misfits(documents[name])).toEqual([])
  })

  it('shows requests that the schemas which check them take', () => {
    const taken = operationsOf(documents[name]).filter(({ operationId }) => Object.hasOwn(CHECKS, operationId))
    expect(taken.length).toBeGreaterThan(2)
    for (const { operationId: id, requestBody } of taken)
      for (const value of valuesOf(requestBody?.content['application/json'] ?? {}))
        expect({ id, issues: parse(CHECKS[id] as z.ZodType, value, 'body') }).toEqual({
          id,
          issues: { value: expect.anything() },
        })
  })

  it('shows errors whose reasons have the status and the text that they are answered with', () => {
    const refusals = refusalsOf(documents[name])
    expect(refusals.length).toBeGreaterThan(30)
    for (const { id, status, body } of refusals) {
      const details = Object.values((body['details'] ?? {}) as Record<string, { code: string; message: string }>)
      for (const { code, message } of details) {
        expect(REASONS, id).toHaveProperty(code)
        const { text, code: of } = REASONS[code as keyof typeof REASONS]
        const said = code === 'role_missing' ? expect.stringMatching(/^The role [A-Z_]+ is missing\.$/) : text
        expect({ id, message }).toEqual({ id, message: said })
        // The numbers of 3-D Secure have other statuses.
        if (name === 'gateway') expect({ id, of }).toEqual({ id, of: status })
      }
    }
  })
})

describe('a reader of a document who looks for what is missing', () => {
  it('is told of each description, example and misfit by its name', () => {
    const document = structuredClone(documents.gateway)
    const operation = document.paths['/oidc/api/v2/card']?.['put']
    const schema = operation?.requestBody?.content['application/json']?.schema as { properties: Record<string, Schema> }
    const { description: _, ...bare } = schema.properties['token_scope'] ?? {}
    schema.properties['token_scope'] = { ...bare, maxLength: 3 }
    delete operation?.responses['404']?.content?.['application/json']?.example
    expect(undescribed(document)).toEqual(['createUpdateToken body.token_scope'])
    expect(unexampled(document)).toEqual(['createUpdateToken 404 application/json'])
    expect(misfits(document)).toContainEqual(expect.stringContaining('createUpdateToken body: data/token_scope'))
  })
})

describe('the document of the gateway', () => {
  const operation = (id: string) => {
    const found = operationsOf(documents.gateway).find(({ operationId }) => operationId === id)
    if (!found) throw new Error(`no operation ${id}`)
    return found
  }
  const bodyOf = (id: string) => operation(id).requestBody?.content['application/json']?.schema as Schema
  const answerOf = (id: string, status = '200') =>
    operation(id).responses[status]?.content?.['application/json']?.schema as Schema
  const propertyOf = (schema: Schema, name: string) =>
    [schema, ...((schema['anyOf'] ?? []) as Schema[])].map(
      one => (one['properties'] as Record<string, Schema> | undefined)?.[name],
    )[schema['properties'] ? 0 : 1]
  const parameterOf = (id: string, name: string) => operation(id).parameters?.find(one => one.name === name)

  it('lists the third parties and brands that the installation knows, and the defaults', () => {
    const types = ['INTERNAL', 'ACME', 'OTHER']
    const asked = bodyOf('createUpdateToken')
    expect(propertyOf(asked, 'reuse_token_type')).toMatchObject({ enum: types, default: 'INTERNAL' })
    expect(propertyOf(asked, 'token_type')).toMatchObject({ default: 'REUSE' })
    expect(propertyOf(asked, 'card_brand')).toMatchObject({ enum: [...BRANDS, 'GIROCARD'] })
    for (const id of ['createUpdateToken', 'getToken'])
      expect(propertyOf(answerOf(id), 'reuse_token_type')).toMatchObject({ enum: types })
    expect(propertyOf(answerOf('getToken', '500'), 'reversal_status')).toMatchObject({ default: 'NONE' })
  })

  it('says what a token of a third party requires, in words and to validators', () => {
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(bodyOf('createUpdateToken'))
    const example = { token_scope: bundle.contract.entityId, encrypted_card: 'x', public_key_alias: 'a' }
    const details = { expiry_month: 12, expiry_year: 2030 }
    const context = { entity_id: bundle.contract.entityId }
    const foreign = { ...example, reuse_token_type: 'ACME' }
    expect(validate(example)).toBe(true)
    expect(validate({ ...example, reuse_token_type: 'INTERNAL' })).toBe(true)
    expect(validate({ ...foreign, reuse_token_details: details, token_context: context })).toBe(true)
    expect(validate({ ...foreign, token_context: context })).toBe(false)
    expect(validate({ ...foreign, reuse_token_details: details })).toBe(false)
    expect(validate({ ...foreign, reuse_token_details: details, token_context: {} })).toBe(false)
    const { description } = propertyOf(bodyOf('createUpdateToken'), 'reuse_token_type') ?? {}
    expect(description).toContain('requires `reuse_token_details`, and `token_context`')
  })

  it('lists the currencies: those of today in PUT and PATCH, withdrawn ones in GET as well', () => {
    for (const id of ['createUpdateToken', 'updateToken'])
      expect(propertyOf(answerOf(id), 'currency')).toMatchObject({ enum: currencies() })
    const { enum: listed } = propertyOf(answerOf('getToken'), 'currency') as { enum: string[] }
    expect(listed).toEqual(expect.arrayContaining([...currencies(), 'BYR', 'LTL', 'FRF', 'BTC']))
    expect(listed.filter(code => !isCurrency(code, 'with-legacy'))).toEqual([])
  })

  it.each(['listOrders', 'listOrderCreators'])('says of %s that lists hold UUIDs', id => {
    for (const name of ['userUids', 'merchantCompanyEntityUids', 'customerEntityUids'])
      expect(parameterOf(id, name)?.schema).toEqual({
        type: 'array',
        items: { type: 'string', format: 'uuid' },
        minItems: 1,
        maxItems: 100,
      })
  })

  it('bounds the pages of orders and reports, and says what they are by default', () => {
    expect(parameterOf('searchReports', 'pageSize')?.schema).toEqual({
      type: 'integer',
      minimum: 1,
      maximum: 1_000,
      default: 50,
    })
    expect(parameterOf('listOrders', 'pageSize')?.schema).toEqual({
      type: 'integer',
      minimum: 1,
      maximum: 100,
      default: 50,
    })
    expect(parameterOf('listOrders', 'pageNumber')?.schema).toEqual({
      type: 'integer',
      minimum: 1,
      maximum: 999_999_999,
      default: 1,
    })
  })

  it('explains the plaintext of an encrypted card: each tag, the time and both envelopes', () => {
    const { description } = propertyOf(bodyOf('createUpdateToken'), 'encrypted_card') ?? {}
    for (const word of [
      ...['cardNumber', 'captureTime', 'expiryMonth', 'expiryYear', 'startMonth', 'startYear', 'cardholderName'],
      ...['sequenceNumber', 'cvv', '15 minutes', 'RFC 3339', 'JWE', 'RSA-OAEP-256', 'ECDH-ES', 'OpenPGP'],
    ])
      expect(description).toContain(word)
  })
})
