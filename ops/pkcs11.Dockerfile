# The image of tokenmill with the binding to PKCS#11, for a key-encryption key in an HSM. Build it from the root of the
# project, upon the image that Dockerfile makes:
#   docker build -t tokenmill . && docker build -t tokenmill-pkcs11 -f ops/pkcs11.Dockerfile .
# The module of the HSM's maker isn't in it: add that module by an image of your own upon this one.
ARG IMAGE=tokenmill

FROM node:24 AS binding
WORKDIR /app
COPY src/vault/pkcs11/package.json src/vault/pkcs11/package-lock.json ./
RUN npm_config_nodedir=/usr/local npm ci --no-audit --no-fund

FROM ${IMAGE}
COPY --from=binding /app/node_modules src/vault/pkcs11/node_modules
