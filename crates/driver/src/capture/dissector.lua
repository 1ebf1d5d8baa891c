-- A dissector for Wireshark and tshark of packets that Clearway has captured: its transports over UDP, and the frames
-- of its flow controls. `clearway pcap --dissector FILE` writes it, from what each scheme says of its own headers.
--
-- Use it once with `tshark -X lua_script:FILE -r out.pcapng`, or put it into Wireshark's folder for Lua plugins
-- (Help, About, Folders). Filters: clearway.scheme == "dcpim", clearway.message == "Token", clearway.dcpim.phase == 7.
-- Written by Clearway VERSION, for its own captures: others may have other numbers for their schemes.

local clearway = Proto("clearway", "Clearway")
local frames = Proto("clearway_frame", "Clearway, between neighbours")

-- By UDP port, and by the byte behind the Ethernet type: name, title, messages. A message: name, bytes, what holds of
-- it, fields. What holds: place, from, to. A field: label, name in filters, place, what it is, and what belongs to that.
-- A place: first byte, bytes, lowest bit, bits.
local SCHEMES = {}
local CONTROLS = {}
-- SCHEMES --

local fields = {
    scheme = ProtoField.string("clearway.scheme", "Scheme"),
    message = ProtoField.string("clearway.message", "Message"),
    says = ProtoField.string("clearway.says", "Says"),
}
for _, schemes in ipairs({ SCHEMES, CONTROLS }) do
    for _, scheme in pairs(schemes) do
        for _, message in ipairs(scheme.messages) do
            for _, field in ipairs(message.fields) do
                local name = "clearway." .. scheme.name .. "." .. field.name
                local kind = field.words and ProtoField.string or ProtoField.uint64
                fields[name] = fields[name] or kind(name, field.name)
            end
        end
    end
end
clearway.fields = fields

local function number(buffer, place)
    local value = buffer(place[1], place[2]):uint64():rshift(place[3])
    return value:band(UInt64.max():rshift(64 - place[4]))
end

local function holds(buffer, test)
    local value = number(buffer, test[1])
    return value >= UInt64.fromhex(test[2]) and value <= UInt64.fromhex(test[3])
end

-- In the largest unit that is not larger than it.
local function written(value, units)
    for index, unit in ipairs(units) do
        local size = UInt64.fromhex(unit[2])
        if value >= size or index == #units then
            local rest = value % size
            local text = tostring(value / size)
            if rest > UInt64(0) then
                local digits = tostring(rest)
                local zeros = string.rep("0", unit[3] - #digits)
                text = text .. "." .. (zeros .. digits):gsub("0+$", "")
            end
            return text .. unit[1]
        end
    end
end

-- The value, and how it is said; no value if there is none.
local function read(buffer, field)
    if field.count then
        local set = UInt64(0)
        for index = 0, field.count - 1 do
            if buffer(field.place[1] + 2 * index, 2):uint() > 0 then
                set = set:bor(UInt64(1):lshift(index))
            end
        end
        set = set:band(number(buffer, field.mask))
        return set, tostring(set)
    end
    local value = number(buffer, field.place)
    if field.words then
        local word = field.words[tostring(value)] or "?"
        return word, word
    end
    if field.present and not holds(buffer, field.present) then
        return nil, "None"
    end
    if field.known and not holds(buffer, field.known) then
        value = UInt64(0)
    end
    if field.units then
        return value, written(value, field.units)
    end
    return value, tostring(value)
end

local function find(buffer, scheme)
    for _, message in ipairs(scheme.messages) do
        if buffer:len() >= message.bytes then
            local fits = true
            for _, test in ipairs(message.when) do
                fits = fits and holds(buffer, test)
            end
            if fits then
                return message
            end
        end
    end
end

local function dissect(protocol, scheme, buffer, info, tree)
    info.cols.protocol = scheme.title
    local message = find(buffer, scheme)
    if not message then
        info.cols.info = "none of its messages"
        tree:add(protocol, buffer(), scheme.title .. ", none of its messages")
        return
    end
    local part = tree:add(protocol, buffer(0, message.bytes), scheme.title)
    part:add(fields.scheme, scheme.name)
    part:add(fields.message, message.name)
    local says = message.name
    for index, field in ipairs(message.fields) do
        local value, said = read(buffer, field)
        local label, closes = field.label:match("^(.-)(%]?)$")
        local between = (label == "" or label:sub(-1) == "[") and "" or " "
        says = says .. (index == 1 and " " or ", ") .. label .. between .. said .. closes
        local range = buffer(field.place[1], field.count and 2 * field.count or field.place[2])
        if value then
            part:add(fields["clearway." .. scheme.name .. "." .. field.name], range, value):set_text(
                field.name .. ": " .. said)
        else
            part:add(range, field.name .. ": " .. said)
        end
    end
    part:add(fields.says, says)
    part:append_text(", " .. says)
    info.cols.info = says
end

function clearway.dissector(buffer, info, tree)
    local scheme = SCHEMES[info.dst_port]
    if scheme then
        dissect(clearway, scheme, buffer, info, tree)
    end
end

function frames.dissector(buffer, info, tree)
    local scheme = CONTROLS[buffer(0, 1):uint()]
    if scheme then
        dissect(frames, scheme, buffer(1):tvb(), info, tree)
    end
end

for port, _ in pairs(SCHEMES) do
    DissectorTable.get("udp.port"):add(port, clearway)
end
DissectorTable.get("ethertype"):add(LINK_FRAME, frames)
