// `tokenmill threeds-contract`: the 3-D Secure contracts of merchants, each with its directory server.

import { randomUUID } from 'node:crypto'
import { grantContract } from '../../../src/acts/contract-grants.ts'
import { isRefusal, REASONS } from '../../../src/errors.ts'
import { parse } from '../../../src/job/refusal.ts'
import * as audits from '../../../src/store/access/audits.ts'
import * as contracts from '../../../src/store/three-ds/three-ds-contracts.ts'
import { ContractTerms } from '../../../src/three-ds/contract.ts'
import { makeJwtKey } from '../../../src/vault/three-ds-jwt.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { openCommandStore, openVault, withSession } from '../../open/open.ts'
import { actor, facts, moment, print, type Terminal, table } from '../../terminal.ts'
import { readKeyFile } from './key.ts'

interface AddOptions extends JsonOption {
  entity: string
  directoryServer: string
  acquirerBin: string
  acquirerMerchantId: string
  mcc: string
  country: string
  merchantName?: string
  requestorUrl: string
  requestorId?: string
  requestorName?: string
  notificationUrl: string
  issuer?: string
  orgUnitId?: string
  jwtKey?: string
}

function termsOf(contractId: string, name: string, options: AddOptions): ContractTerms {
  const merchantName = options.merchantName ?? name
  const given = {
    name,
    entityId: options.entity,
    directoryUrl: options.directoryServer,
    acquirerBin: options.acquirerBin,
    acquirerMerchantId: options.acquirerMerchantId,
    mcc: options.mcc,
    merchantCountry: options.country.toUpperCase(),
    merchantName,
    requestorUrl: options.requestorUrl,
    notificationUrl: options.notificationUrl,
    requestorId: options.requestorId ?? contractId.replaceAll('-', ''),
    requestorName: options.requestorName ?? merchantName,
    issuer: options.issuer ?? contractId,
    orgUnitId: options.orgUnitId ?? options.entity,
  }
  const parsed = parse(ContractTerms, given, 'contract')
  if (!isRefusal(parsed)) return parsed.value
  throw new Stop(
    `${WORDS[parsed.field.slice('contract.'.length)] ?? parsed.field}: ${REASONS[parsed.reason].text}`,
    EXIT.usage,
  )
}

/** Each term and its name on the command line. */
const WORDS: Readonly<Record<string, string>> = {
  name: 'the name',
  directoryUrl: '--directory-server',
  acquirerBin: '--acquirer-bin',
  acquirerMerchantId: '--acquirer-merchant-id',
  mcc: '--mcc',
  merchantCountry: '--country',
  merchantName: '--merchant-name',
  requestorUrl: '--requestor-url',
  notificationUrl: '--notification-url',
  requestorId: '--requestor-id',
  requestorName: '--requestor-name',
  issuer: '--issuer',
  orgUnitId: '--org-unit-id',
}

export function add(terminal: Terminal, name: string, options: AddOptions): Promise<void> {
  const contractId = randomUUID()
  const terms = termsOf(contractId, name, options)
  return withSession(terminal, async session => {
    const key = options.jwtKey === undefined ? makeJwtKey() : await readKeyFile(options.jwtKey)
    const { store, ring } = await openVault(session)
    await ring.reserve('three-ds')
    await store.transaction(async db => {
      if (!(await contracts.insert(db, ring, { ...terms, contractId, key })))
        throw new Stop(`The entity already has a contract with the name ${name}; choose another name.`)
      await grantContract(db, ring, { ...terms, contractId })
      const detail = { entity_id: terms.entityId, name, key_imported: options.jwtKey !== undefined }
      await audits.insert(db, { actor: actor(), action: 'threeds-contract.add', subject: contractId, detail })
    })
    print(
      terminal,
      options,
      { threeds_contract_id: contractId, ...shown(terms) },
      facts({ threeds_contract_id: contractId }),
    )
  })
}

export function list(terminal: Terminal, options: JsonOption & { entity?: string }): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const found = await contracts.list(store, options.entity ?? null)
    const rows = found.map(one => [
      ...[one.contractId, one.name, one.entityId, one.directoryUrl, moment(one.createdAt)],
      moment(one.formerUntil),
    ])
    const values = found.map(one => ({
      threeds_contract_id: one.contractId,
      ...shown(one),
      created_at: moment(one.createdAt),
      former_key_until: moment(one.formerUntil),
    }))
    print(
      terminal,
      options,
      values,
      table(['CONTRACT', 'NAME', 'ENTITY', 'DIRECTORY SERVER', 'CREATED', 'FORMER KEY UNTIL'], rows),
    )
  })
}

function shown(terms: ContractTerms) {
  return {
    name: terms.name,
    entity_id: terms.entityId,
    directory_server: terms.directoryUrl,
    acquirer_bin: terms.acquirerBin,
    acquirer_merchant_id: terms.acquirerMerchantId,
    mcc: terms.mcc,
    country: terms.merchantCountry,
    merchant_name: terms.merchantName,
    requestor_url: terms.requestorUrl,
    requestor_id: terms.requestorId,
    requestor_name: terms.requestorName,
    notification_url: terms.notificationUrl,
    issuer: terms.issuer,
    org_unit_id: terms.orgUnitId,
  }
}
