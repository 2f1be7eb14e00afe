# python -m datasets smarthome, with --time-unit us --order-column seq
SwitchOn(plug: string, appliance: string, power_1s_w: int)
SwitchOff(plug: string, appliance: string, power_1s_w: int)
