// Whether a directory server would accept an AReq made of this lookup. Required values that only the caller can give
// are checked here, before anything is saved or sent.

import { MESSAGE_VERSION } from '../messages.ts'
import type { Category, Network } from '../outcome.ts'
import { inclusionOf, type Member, type Situation, type Version } from './table.ts'

const SCRIPTED = [
  'browser_java_enabled',
  'browser_color_depth',
  'browser_screen_height',
  'browser_screen_width',
  'browser_time_zone',
] as const

/** The facts of a lookup that the table of members needs. */
interface Admitted {
  device_channel: 'Browser' | '3RI'
  message_category: Category
  authentication_indicator?: string | undefined
  three_ri_indicator?: string | undefined
  billing_country_code?: string | undefined
  shipping_country_code?: string | undefined
  recurring_frequency?: number | undefined
  installment?: number | undefined
  prior_authentication_data?: string | number | undefined
  prior_authentication_time?: string | number | undefined
  device_data_info?:
    | ({ [name in (typeof SCRIPTED)[number]]?: unknown } & { browser_javascript_enabled?: boolean | undefined })
    | undefined
}

const CHANNELS = { Browser: 'BRW', '3RI': '3RI' } as const
/** EMV's message category of a payment. */
const PAYMENT = '01'

/**
 * The facts by which the table of members says what an AReq must hold. `network` is undefined while the card isn't
 * known.
 */
export function situationOf(
  request: Admitted,
  network: Network | undefined,
  version: Version = MESSAGE_VERSION,
): Situation {
  const channel = CHANNELS[request.device_channel]
  const device = request.device_data_info ?? {}
  return {
    version,
    channel,
    category: request.message_category,
    network,
    ...(channel === '3RI'
      ? { threeRIInd: request.three_ri_indicator }
      : { authenticationInd: request.authentication_indicator ?? PAYMENT }),
    // If scripts are on, EMV requires all of these members. A browser for which the caller left one out counts as one
    // without scripts.
    hasScripts: device.browser_javascript_enabled !== false && SCRIPTED.every(name => isGiven(device[name])),
    hasBillingCountry: isGiven(request.billing_country_code),
    hasShippingCountry: isGiven(request.shipping_country_code),
  }
}

type Source = Exclude<keyof Admitted, 'device_data_info'> | `device_data_info.${(typeof SCRIPTED)[number]}`

/** Members that can only come from these fields of the request. */
const SOURCES: { readonly [M in Member]?: readonly Source[] } = {
  threeRIInd: ['three_ri_indicator'],
  recurringFrequency: ['recurring_frequency'],
  purchaseInstalData: ['installment'],
  threeDSRequestorPriorAuthenticationInfo: ['prior_authentication_data', 'prior_authentication_time'],
  browserJavaEnabled: ['device_data_info.browser_java_enabled'],
  browserColorDepth: ['device_data_info.browser_color_depth'],
  browserScreenHeight: ['device_data_info.browser_screen_height'],
  browserScreenWidth: ['device_data_info.browser_screen_width'],
  browserTZ: ['device_data_info.browser_time_zone'],
}

/** The fields without which a directory server would refuse the request, under their names in the body. */
export function missingFields(request: Admitted, network?: Network, version?: Version): Source[] {
  const situation = situationOf(request, network, version)
  return Object.entries(SOURCES)
    .filter(([member]) => inclusionOf(member as Member, situation) === 'required')
    .flatMap(([, fields]) => fields)
    .filter(field => !isGiven(valueAt(request, field)))
}

function valueAt(request: Admitted, field: Source): unknown {
  const [name, inner] = field.split('.') as [keyof Admitted, (typeof SCRIPTED)[number] | undefined]
  return inner === undefined ? request[name] : request.device_data_info?.[inner]
}

/** Whether a value was given: callers send unused fields as empty texts. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== ''
}
